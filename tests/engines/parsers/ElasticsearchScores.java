import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.stream.Stream;
import org.elasticsearch.common.logging.LogConfigurator;
import org.elasticsearch.common.settings.Settings;
import org.elasticsearch.search.SearchModule;
import org.elasticsearch.xcontent.NamedXContentRegistry;
import org.elasticsearch.xcontent.XContentParserConfiguration;
import org.elasticsearch.xcontent.json.JsonXContent;
import org.elasticsearch.xpack.core.ml.action.PutTrainedModelAction;
import org.elasticsearch.xpack.core.ml.inference.InferenceToXContentCompressor;
import org.elasticsearch.xpack.core.ml.inference.MlInferenceNamedXContentProvider;
import org.elasticsearch.xpack.core.ml.inference.trainedmodel.inference.InferenceDefinition;
import org.elasticsearch.xpack.core.ml.ltr.MlLTRNamedXContentProvider;

/** Takes model.json as PUT _ml/trained_models does, stores it compressed, and scores with what it loads again. */
class ElasticsearchScores extends FolderScores {
    private final NamedXContentRegistry registry = new NamedXContentRegistry(Stream.of(
        new SearchModule(Settings.EMPTY, List.of()).getNamedXContents(),
        new MlInferenceNamedXContentProvider().getNamedXContentParsers(),
        new MlLTRNamedXContentProvider().getNamedXContentParsers()
    ).flatMap(List::stream).toList());

    @Override
    Model read(Path folder) throws IOException {
        var configuration = XContentParserConfiguration.EMPTY.withRegistry(registry);
        PutTrainedModelAction.Request request;
        byte[] body = Files.readAllBytes(folder.resolve("model.json"));
        try (var parser = JsonXContent.jsonXContent.createParser(configuration, body)) {
            request = PutTrainedModelAction.Request.parseRequest("podium", false, false, parser);
        }
        var problems = request.validate();
        if (problems != null) {
            throw problems;
        }
        var model = request.getTrainedModelConfig().ensureParsedDefinition(registry);
        model.getModelDefinition().getTrainedModel().validate();
        var stored = InferenceToXContentCompressor.inflate(
            model.getCompressedDefinition(), InferenceDefinition::fromXContent, registry);
        return row -> {
            row.values().removeIf(value -> value.isNaN());
            var score = stored.infer(new HashMap<>(row), model.getInferenceConfig()).predictedValue();
            return ((Number) score).floatValue(); // as the rescorer returns it
        };
    }

    public static void main(String[] none) throws IOException {
        LogConfigurator.configureESLogging();
        new ElasticsearchScores().run();
    }
}
