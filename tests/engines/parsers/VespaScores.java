import ai.vespa.rankingexpression.importer.configmodelview.ImportedMlModels;
import ai.vespa.rankingexpression.importer.lightgbm.LightGBMImporter;
import com.yahoo.config.model.application.provider.BaseDeployLogger;
import com.yahoo.config.model.application.provider.FilesApplicationPackage;
import com.yahoo.config.model.application.provider.MockFileRegistry;
import com.yahoo.config.model.deploy.TestProperties;
import com.yahoo.schema.ApplicationBuilder;
import com.yahoo.schema.RankProfileRegistry;
import com.yahoo.search.query.profile.QueryProfileRegistry;
import com.yahoo.searchlib.rankingexpression.evaluation.DoubleValue;
import com.yahoo.searchlib.rankingexpression.evaluation.MapContext;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** Reads the schemas and models of an application as deploying does, and evaluates the second phase of its profile. */
class VespaScores extends FolderScores {
    private final ExecutorService executor = Executors.newSingleThreadExecutor();

    @Override
    Model read(Path folder) throws Exception {
        var profiles = new RankProfileRegistry();
        var queryProfiles = new QueryProfileRegistry();
        var application = FilesApplicationPackage.fromDir(folder.toFile(), Map.of());
        var builder = new ApplicationBuilder(application, new MockFileRegistry(), new BaseDeployLogger(),
            new TestProperties(), profiles, queryProfiles); // reads the schemas
        builder.build(true);
        var models = new ImportedMlModels(folder.resolve("models").toFile(), executor, List.of(new LightGBMImporter()));
        var profile = profiles.get(builder.getSchema(), "podium").compile(queryProfiles, models);
        var expression = profile.getSecondPhaseRanking();
        return row -> {
            var document = new MapContext();
            row.forEach((feature, value) -> document.put(feature, new DoubleValue(value)));
            var features = new MapContext();
            profile.getFunctions().forEach((name, function) ->
                features.put(name, function.function().getBody().evaluate(document)));
            return expression.evaluate(features).asDouble();
        };
    }

    public static void main(String[] none) throws IOException {
        new VespaScores().run();
        System.exit(0); // its threads would wait
    }
}
